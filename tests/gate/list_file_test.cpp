#include "gate/list_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace sluice {

namespace {

std::vector<std::string> texts(const ListFile& list) {
    std::vector<std::string> all;
    for (const auto& prefix : list.prefixes)
        all.push_back(prefix.to_string());
    return all;
}

using Texts = std::vector<std::string>;

ListFile take(std::string_view text, ListFormat format = ListFormat::automatic) {
    const auto list = parse_list(text, format);
    EXPECT_TRUE(list) << list.error().message;
    return list ? *list : ListFile{};
}

std::string refusal(std::string_view text, ListFormat format = ListFormat::automatic) {
    const auto list = parse_list(text, format);
    EXPECT_FALSE(list);
    return list ? std::string{} : list.error().message;
}

TEST(ListFileTest, PlainListsHaveOneEntryALine) {
    const auto list = take(
        "# comment\n"
        "; another\n"
        "\n"
        "192.0.2.1\n"
        "  198.51.100.0/24  \n"
        "\t2001:db8::/32\t# with a reason\n"
        "203.0.113.7;SBL1\n"
        "203.0.113.8   one.example, two.example\n"
        "203.0.113.9\t7");
    EXPECT_EQ(texts(list), (Texts{"192.0.2.1", "198.51.100.0/24", "2001:db8::/32", "203.0.113.7",
                                  "203.0.113.8", "203.0.113.9"}));
    EXPECT_EQ(list.refused, 0U);
}

TEST(ListFileTest, ByteOrderMarkAndCarriageReturnsAreNothing) {
    EXPECT_EQ(texts(take("\xef\xbb\xbf"
                         "192.0.2.1\r\n192.0.2.2\r\n")),
              (Texts{"192.0.2.1", "192.0.2.2"}));
}

TEST(ListFileTest, HostBitsAreClearedAndDuplicatesCounted) {
    const auto list = take("192.0.2.4/24\n192.0.2.5/24\n192.0.2.1\n192.0.2.1/32\n");
    EXPECT_EQ(texts(list), (Texts{"192.0.2.0/24", "192.0.2.1"}));
    EXPECT_EQ(list.host_bits_cleared, 2U);
    EXPECT_EQ(list.duplicates, 2U);
}

TEST(ListFileTest, MappedAddressesAreIpv4) {
    EXPECT_EQ(texts(take("::ffff:192.0.2.7\n")), (Texts{"192.0.2.7"}));
}

TEST(ListFileTest, TheWidestAreRefusedByLineUnlessForced) {
    const auto text = "192.0.2.1\n0.0.0.0/0\n198.51.100.1\n::/0\n";
    const auto list = take(text);
    EXPECT_EQ(list.prefixes.size(), 2U);
    ASSERT_EQ(list.refused_lines.size(), 2U);
    EXPECT_EQ(list.refused_lines[0].line, 2U);
    EXPECT_NE(list.refused_lines[0].why.find("0.0.0.0/0"), std::string::npos);
    EXPECT_EQ(list.refused_lines[1].line, 4U);
    EXPECT_EQ(parse_list(text, ListFormat::plain, true).value().prefixes.size(), 4U);
    EXPECT_NE(refusal("0.0.0.0/0\n").find("line 1"), std::string::npos);
}

TEST(ListFileTest, AFewBadLinesAreLeftOutAndNamed) {
    const auto list = take(
        "192.0.2.1\n999.999.999.999\n192.0.2.2\n16.5.0/24\n192.0.2.3\n"
        "2001:db8::1:58340\n");
    EXPECT_EQ(texts(list), (Texts{"192.0.2.1", "192.0.2.2", "192.0.2.3"}));
    ASSERT_EQ(list.refused, 3U);
    EXPECT_EQ(list.refused_lines[0].line, 2U);
    EXPECT_EQ(list.refused_lines[0].text, "\"999.999.999.999\"");
}

TEST(ListFileTest, MoreNoiseThanEntriesIsTheWrongFile) {
    EXPECT_NE(refusal("time.example\npool.example\n192.0.2.1\n").find("line 1: "),
              std::string::npos);
    EXPECT_NE(refusal("# ASNs\nAS64496 # some network\n").find("line 2: "), std::string::npos);
}

TEST(ListFileTest, ARangeIsItsPrefixNeverItsFirstAddress) {
    EXPECT_EQ(texts(take("192.0.2.0\t192.0.2.255\t24\t107\tEXAMPLE\tUS\n"
                         "198.51.100.64 198.51.100.127 26\n")),
              (Texts{"192.0.2.0/24", "198.51.100.64/26"}));
    for (const auto* range :
         {"192.0.2.0\t192.0.2.127\t24\n", "192.0.2.1\t192.0.2.9\t29\n", "192.0.2.0 192.0.2.255\n",
          "192.0.2.0 - 192.0.2.255\n", "192.0.2.0-192.0.2.255\n"})
        EXPECT_NE(refusal(range).find("line 1: "), std::string::npos) << range;
    EXPECT_EQ(texts(take("0.0.0.0 0.255.255.255 8\n")), (Texts{"0.0.0.0/8"}));
    EXPECT_EQ(texts(take("255.0.0.0 255.255.255.255 8\n")), (Texts{"255.0.0.0/8"}));
}

TEST(ListFileTest, SpamhausTextIsRead) {
    const auto list = take(
        "; Spamhaus DROP List - (c) The Spamhaus Project\n"
        "; Last-Modified: Sat, 01 Jan 2022 00:00:00 GMT\n"
        "192.0.2.0/24 ; SBL000001\n"
        "198.51.100.0/24 ; SBL000002\n",
        ListFormat::spamhaus);
    EXPECT_EQ(texts(list), (Texts{"192.0.2.0/24", "198.51.100.0/24"}));
}

constexpr std::string_view kJsonLines = R"({"cidr":"192.0.2.0/24","sblid":"SBL1","rir":"arin"})"
                                        "\n"
                                        R"({"cidr":"2001:db8::/32","sblid":"SBL2","rir":"arin"})"
                                        "\n";

TEST(ListFileTest, SpamhausJsonIsReadAndCounted) {
    const std::string lines(kJsonLines);
    EXPECT_EQ(texts(take(lines + R"({"type":"metadata","timestamp":1,"records":2})" + "\n")),
              (Texts{"192.0.2.0/24", "2001:db8::/32"}));
    EXPECT_NE(refusal(lines + R"({"type":"metadata","records":3})").find("3 records, but has 2"),
              std::string::npos);
}

TEST(ListFileTest, JsonCutShortIsRefused) {
    const std::string lines(kJsonLines);
    EXPECT_NE(refusal(lines).find("metadata"), std::string::npos);
    EXPECT_NE(refusal(lines.substr(0, lines.size() - 9)).find("line 2: "), std::string::npos);
    EXPECT_TRUE(parse_list(lines, ListFormat::automatic, true));
}

TEST(ListFileTest, WhatSluicectlPrintedIsReadWithItsEnds) {
    const auto list =
        take(R"({"ok":true,"data":{"bans":[)"
             R"({"prefix":"192.0.2.1","source":"a","expires_in_s":60.5},)"
             R"({"prefix":"192.0.2.1","source":"b","expires_in_s":90},)"
             R"({"prefix":"192.0.2.2","source":"a","expires_in_s":60},)"
             R"({"prefix":"192.0.2.2","source":"b","expires_in_s":null},)"
             R"({"prefix":"192.0.2.3","source":"a","expires_in_s":0},)"
             R"({"prefix":"2001:db8::/64","source":"a","expires_in_s":null}],"total":6}})"
             "\n");
    EXPECT_EQ(texts(list), (Texts{"192.0.2.1", "192.0.2.2", "2001:db8::/64"}));
    ASSERT_EQ(list.lasting.size(), 1U);
    EXPECT_EQ(list.lasting.begin()->second, std::chrono::seconds(90));
    EXPECT_NE(refusal(R"({"ok":true,"data":{"bans":[]}})").find("no entries"), std::string::npos);
    EXPECT_NE(refusal(R"({"ok":true,"data":{"bans":[7]}})").find("has no prefix"),
              std::string::npos);
}

TEST(ListFileTest, TheWrongFileIsNamedByItsFirstLine) {
    for (const std::string_view text :
         {std::string_view("<!DOCTYPE html>\n<html>"), std::string_view("\x1f\x8b\x08\0\0", 5),
          std::string_view(R"({"asn":64496,"domain":"example"})"
                           "\n"),
          std::string_view("[1, 2]\n"), std::string_view("{\n  \"cidr\": 1\n}\n"),
          std::string_view("PK\x03\x04zip"), std::string_view("\0\0\0", 3),
          std::string_view("\xff\xfe"
                           "1\0",
                           4)})
        EXPECT_EQ(refusal(text).rfind("line 1: ", 0), 0U) << refusal(text);
    EXPECT_NE(refusal(kJsonLines, ListFormat::plain).find("JSON"), std::string::npos);
}

TEST(ListFileTest, AListWithoutEntriesIsNoSuccess) {
    for (const std::string_view text : {"", "\n\n", "# nothing today\n", "; nothing\n"})
        EXPECT_NE(refusal(text).find("no entries"), std::string::npos);
}

TEST(ListFileTest, ReservedSpaceIsCountedAndNamed) {
    const ListFile list = take(
        "10.0.0.0/8\n192.168.1.1\n192.0.2.1\nfe80::1\n240.0.0.0/4\n127.0.0.1\n", ListFormat::plain);
    EXPECT_EQ(list.reserved, 4U);
    ASSERT_EQ(list.reserved_prefixes.size(), 3U);
    EXPECT_EQ(list.reserved_prefixes.front().to_string(), "10.0.0.0/8");
}

TEST(ListFileTest, FormatsHaveNames) {
    EXPECT_EQ(parse_list_format("auto").value(), ListFormat::automatic);
    EXPECT_EQ(parse_list_format("firehol").value(), ListFormat::firehol);
    const auto unknown = parse_list_format("csv");
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::usage);
}

TEST(ListFileTest, ALongLineIsNotRepeatedWhole) {
    EXPECT_LT(refusal(std::string(1'000'000, 'x')).size(), 400U);
    EXPECT_LT(refusal('{' + std::string(1'000'000, 'x')).size(), 400U);
    EXPECT_LT(refusal('<' + std::string(1'000'000, 'x')).size(), 400U);
}

TEST(ListFileTest, DevicesAreNoLists) {
    const auto zero = read_list_file("/dev/zero", ListFormat::automatic);
    ASSERT_FALSE(zero);
    EXPECT_NE(zero.error().message.find("is a device"), std::string::npos);
}

TEST(ListFileTest, FilesAreNamedInErrors) {
    const auto missing = read_list_file("/nonexistent/list", ListFormat::automatic);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::not_found);

    const std::string path = ::testing::TempDir() + "list-" + std::to_string(::getpid());
    std::ofstream(path) << "<html>\n";
    const auto html = read_list_file(path, ListFormat::automatic);
    ASSERT_FALSE(html);
    EXPECT_EQ(html.error().message.rfind(path, 0), 0U);
    std::ofstream(path) << "192.0.2.1\n";
    EXPECT_EQ(read_list_file(path, ListFormat::automatic).value().prefixes.size(), 1U);
    ::unlink(path.c_str());
}

}  // namespace

}  // namespace sluice
