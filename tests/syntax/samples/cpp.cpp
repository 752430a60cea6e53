#include <string>
#include <vector>

using Names = std::vector<std::string>;

namespace shop {

constexpr double kRate = 0.19;

/// Prices lines.
class Pricer {
public:
    virtual ~Pricer() = default;
    virtual int price(const std::string& line) const = 0;
};

template <typename Line>
class Order : public Base {
public:
    explicit Order(Names lines) : lines_(std::move(lines)) { check(); }

    // Sums all lines. With tax.
    double total(const Pricer& pricer) const;

    int size() const { return lines_.size(); }

private:
    Names lines_;
};

template <typename Line>
double Order<Line>::total(const Pricer& pricer) const {
    double sum = 0;
    for (const auto& line : lines_) {
        sum += pricer.price(line);
    }
    return sum * (1 + kRate);
}

}  // namespace shop

int main(int argc, char** argv) {
    auto pricer = shop::make_pricer(argv[1]);
    return pricer->price("a");
}
