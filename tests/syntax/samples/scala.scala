package a.b
import c.d.E
import c.{F, G => H}
/** Doc of C. */
class C[T](val a: Int) extends B(a) {
  val f = 1
  def m(a: Int): Int = {
    this.h(1)
    g(2)
  }
  def abs: Int
}
object O { val K = 1 }
