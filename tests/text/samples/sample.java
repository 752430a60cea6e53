package demo.shop;

import java.util.*;
import java.util.function.Function;

/**
 * A bounded queue. It's not thread-safe.
 */
public final class Ring<T> implements Iterable<T> {
    private final Object[] slots;
    private int head, size;

    public Ring(int capacity) {
        if (capacity <= 0) throw new IllegalArgumentException("capacity: " + capacity);
        this.slots = new Object[capacity];
    }

    public boolean offer(T item) {
        if (size == slots.length) {
            return false;
        }
        slots[(head + size++) % slots.length] = item;
        return true;
    }

    @SuppressWarnings("unchecked")
    public Optional<T> poll() {
        if (size == 0) { return Optional.empty(); }
        T item = (T) slots[head];
        slots[head] = null;
        head = (head + 1) % slots.length; size--;
        return Optional.of(item);
    }

    @Override
    public Iterator<T> iterator() {
        return new Iterator<>() {
            int i = 0;
            public boolean hasNext() { return i < size; }
            @SuppressWarnings("unchecked")
            public T next() { return (T) slots[(head + i++) % slots.length]; }
        };
    }
}
