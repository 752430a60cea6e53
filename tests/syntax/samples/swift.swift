import Foundation
/// Doc of C.
public class C<T>: B {
    static let k = 1
    init(a: Int) {
        super.init()
    }
    func m(_ a: Int) throws -> Int {
        self.g(1)
        return Foo(2).x
    }
}
protocol I {
    func m()
}
extension C {
    func e() {}
}
