-- Doc of t.
CREATE TABLE t (
  id INT PRIMARY KEY,
  name VARCHAR(10) NOT NULL
);
CREATE VIEW v AS SELECT a, count(b) FROM t WHERE x = 'str' GROUP BY a;
