<?php
namespace A\B;
use C\D;
use E\F as G;
/** Doc of C. */
abstract class C extends B {
    const X = 1;
    private int $f = 1;
    public function __construct(private int $a) {
        parent::__construct();
        $this->z($a);
    }
    abstract function q();
}
function f($a) { return g($a); }
