package orders

import (
	"fmt"
	str "strings"
)

const (
	Rate = 0.19
	Max  = 10
)

var cache = map[string]int{}

// Order is one order.
type Order struct {
	Number int
	Lines  []string `json:"lines"`
}

// Pricer prices lines.
type Pricer interface {
	Price(line string) (int, error)
}

type Table map[string]int

// Total sums all lines. With tax.
func (o *Order) Total(p Pricer) (float64, error) {
	sum := 0.0
	for _, line := range o.Lines {
		price, err := p.Price(str.TrimSpace(line))
		if err != nil {
			return 0, fmt.Errorf("line %q: %w", line, err)
		}
		sum += float64(price)
	}
	return sum * (1 + Rate), nil
}

func (t Table) Price(line string) (int, error) { return t[line], nil }

func New(number int) *Order {
	order := &Order{Number: number}
	return order
}
