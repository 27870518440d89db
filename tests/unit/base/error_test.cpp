#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/result.h"
#include "base/unique_fd.h"

namespace sluice {
namespace {

TEST(Error, ContextStandsInFrontAndKeepsCodeAndHint) {
    const Error error = make_error(ErrorCode::not_found, "no such map", "load the gate first");
    const Error outer = error.with_context("read bans");
    EXPECT_EQ(outer.message, "read bans: no such map");
    EXPECT_EQ(outer.hint, "load the gate first");
    EXPECT_EQ(outer.code, ErrorCode::not_found);
}

TEST(Error, ErrnoOfEitherSignBecomesTextAndCode) {
    EXPECT_EQ(from_errno(ENOENT, "open").message, "open: No such file or directory");
    EXPECT_EQ(from_errno(-ENOENT, "open").code, ErrorCode::not_found);
    EXPECT_EQ(from_errno(-EPERM, "load").code, ErrorCode::not_permitted);
    EXPECT_EQ(from_errno(EACCES, "load").code, ErrorCode::not_permitted);
    EXPECT_EQ(from_errno(-E2BIG, "update").code, ErrorCode::failed);
}

TEST(Error, CodesHaveStableNames) {
    EXPECT_EQ(error_code_name(ErrorCode::failed), "failed");
    EXPECT_EQ(error_code_name(ErrorCode::usage), "usage");
    EXPECT_EQ(error_code_name(ErrorCode::unreachable), "unreachable");
    EXPECT_EQ(error_code_name(ErrorCode::not_found), "not_found");
    EXPECT_EQ(error_code_name(ErrorCode::not_permitted), "not_permitted");
}

Result<int> half(int n) {
    if (n % 2 != 0)
        return failed("odd");
    return n / 2;
}

TEST(Result, ChainsStopAtTheFirstError) {
    EXPECT_EQ(*half(8).and_then(half), 4 / 2);
    EXPECT_EQ(half(6).and_then(half).error().message, "odd");
    EXPECT_EQ(*half(6).transform([](int n) { return n + 1; }), 4);
    EXPECT_EQ(half(3).transform([](int n) { return n + 1; }).error().message, "odd");
}

TEST(Status, IsAnErrorOnlyWhereItGotOne) {
    EXPECT_TRUE(Status{});
    EXPECT_FALSE(Status{failed("no")});
}

TEST(UniqueFd, MovesOwnership) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    UniqueFd taken = std::move(writer);
    EXPECT_TRUE(taken);
    taken.reset();
    char byte = 0;
    EXPECT_EQ(::read(reader.get(), &byte, 1), 0) << "the write end is closed";
}

}  // namespace
}  // namespace sluice
