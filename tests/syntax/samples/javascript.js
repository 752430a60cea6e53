import fs, { join as joined } from "node:path";
const { readFile } = require("fs");

const RATE = 0.19;

/**
 * One order.
 */
class Order extends Base {
  static count = 0;
  #lines = [];

  constructor(number, lines) {
    super();
    this.number = number;
    this.#lines = lines;
  }

  // Sums all lines. With tax.
  async total(pricer) {
    let sum = 0;
    for (const line of this.#lines) {
      sum += await pricer.price(`line ${line.trim()}`);
    }
    return sum * (1 + RATE);
  }
}

export const priceOf = (line, table = {}) => {
  return table[line] ?? lookup(line);
};

function* numbers(limit) {
  for (let n = 0; n < limit; n++) {
    yield n;
  }
}

app.get("/orders", (request, response) => {
  response.json(priceOf(request.query.line));
});

module.exports = { Order, priceOf };
