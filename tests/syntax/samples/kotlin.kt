package a.b
import c.d.E
import c.d.F as G
/** Doc of C. */
data class C(val a: Int) : B(a) {
    companion object {
        const val K = 1
    }
    private val f: Int = 1
    override fun m(a: Int): Int {
        this.g(1)
        return Foo(2).x
    }
    fun e() = 3
}
enum class En { A, B }
