package datafile

// loserTree finds the least of some players again and again: each inner node
// holds the loser of the match below it, so that after a player has changed only
// the matches on its way to the root are played again.
type loserTree struct {
	nodes []int // nodes[0] is the winner
	less  func(a, b int) bool
}

func newLoserTree(players int, less func(a, b int) bool) *loserTree {
	t := &loserTree{nodes: make([]int, max(players, 1)), less: less}
	t.nodes[0] = t.play(1)
	return t
}

// play plays all matches below a node and returns the winner. The players are
// the leaves of a complete tree, numbered on from its inner nodes.
func (t *loserTree) play(node int) int {
	n := len(t.nodes)
	if node >= n {
		return node - n
	}
	a, b := t.play(2*node), t.play(2*node+1)
	if t.less(b, a) {
		a, b = b, a
	}
	t.nodes[node] = b
	return a
}

func (t *loserTree) winner() int { return t.nodes[0] }

// changed plays the matches of the winner again.
func (t *loserTree) changed() {
	w := t.nodes[0]
	for node := (w + len(t.nodes)) / 2; node > 0; node /= 2 {
		if t.less(t.nodes[node], w) {
			w, t.nodes[node] = t.nodes[node], w
		}
	}
	t.nodes[0] = w
}
