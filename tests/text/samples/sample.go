package main

import (
	"fmt"
	"os"
	"strings"
)

// Node is one entry of the tree.
type Node struct {
	Name     string `json:"name"`
	Children []*Node
}

func (n *Node) Walk(depth int, visit func(*Node, int) error) error {
	if err := visit(n, depth); err != nil {
		return fmt.Errorf("walk %q: %w", n.Name, err)
	}
	for _, child := range n.Children {
		if err := child.Walk(depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

/*
 block comment
*/
func main() {
	root := &Node{Name: "корень", Children: []*Node{{Name: "лист"}}}
	err := root.Walk(0, func(n *Node, d int) error {
		fmt.Printf("%s%s\n", strings.Repeat("  ", d), n.Name)
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
