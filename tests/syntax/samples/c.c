#include <stdio.h>
#include "order.h"

#define RATE 0.19
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* One order. */
typedef struct {
    int number;
    char *lines[8];
} order_t;

enum state { OPEN, CLOSED };

static int cache[16];

int price_of(const char *line, int count);

// Sums all lines.
static double total(const order_t *order, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += price_of(order->lines[i], 1);
    }
    return sum * (1 + RATE);
}

char *name_of(order_t *order) {
    printf("%d\n", order->number);
    return order->lines[0];
}
