using System;
namespace N.M {
    /// <summary>Doc of C.</summary>
    [Attr]
    public class C<T> : B {
        const int K = 1;
        public int P { get; set; }
        public C(int a) : base(a) {
            Init(a);
        }
        public override async Task<int> M(int a) {
            this.G(1);
            return 0;
        }
        int E() => 3;
    }
}
