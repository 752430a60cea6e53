package shop.orders;

import java.util.List;
import static java.lang.Math.round;

/** One order. Immutable. */
@Deprecated
public final class Order<T extends Line> implements Comparable<Order<T>> {
    private static final double RATE = 0.19;
    private final List<T> lines;

    public Order(List<T> lines) {
        this.lines = List.copyOf(lines);
        check();
    }

    /**
     * Sums all lines. With tax.
     *
     * @param pricer prices lines
     */
    @Override
    public double total(Pricer pricer) throws PriceException {
        double sum = 0;
        for (T line : lines) {
            sum += pricer.price(line.text());
        }
        return round(sum * (1 + RATE));
    }

    interface Pricer {
        int price(String line) throws PriceException;
    }

    enum State { OPEN, CLOSED }
}
