// Pictures as SVG: lines over two logarithmic axes, or bars.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace sluice::bench {

struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;  // both above 0, in the order of x
};

struct LineChart {
    std::string title, below;
    std::string x_name;
    std::vector<Line> lines;  // at least one
    std::string one;          // what 1 of the y axis is, where it is drawn as a line of its own
};

struct Bar {
    std::string name;
    double ns = 0;
};

struct BarChart {
    std::string title, below;
    std::vector<Bar> bars;  // at least one; the shortest comes first
};

// Into that file; lines and bars whose names begin with Sluice stand out.
Status draw(const LineChart& chart, const std::string& path);
Status draw(BarChart chart, const std::string& path);

}  // namespace sluice::bench
