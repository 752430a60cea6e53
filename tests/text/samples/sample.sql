-- monthly revenue; it's slow without the index
CREATE TABLE IF NOT EXISTS orders (
    id          BIGINT PRIMARY KEY,
    customer_id BIGINT NOT NULL REFERENCES customers(id),
    placed_at   TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    cents       INTEGER CHECK (cents >= 0)
);

/* two levels
   of aggregation */
WITH monthly AS (
    SELECT date_trunc('month', placed_at) AS month, customer_id, SUM(cents) / 100.0 AS total
    FROM orders
    WHERE placed_at >= '2024-01-01' AND cents <> 0
    GROUP BY 1, 2
)
SELECT month, COUNT(*) AS buyers, ROUND(AVG(total), 2) AS mean, 'été' AS "saison"
FROM monthly
GROUP BY month
HAVING COUNT(*) > 10
ORDER BY month DESC
LIMIT 12;
