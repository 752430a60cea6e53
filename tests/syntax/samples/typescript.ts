import a, {b as c, d} from 'x';
const z = require("zz");
export const K = 3, f2 = (x: number): number => { return x };
/** Doc of A. */
@Comp({a: 1})
export default class A<T> extends B implements I {
  private x: number = 1;
  constructor(private a: string) {
    super();
    this.init(a);
  }
  async m(p?: number): Promise<void> {
    await this.q(1);
    new Foo(2);
  }
  h = () => {
    return 1;
  };
}
export interface I { a: string; m(x: number): void }
export const g = async (a: string) => {
  const local = 1;
  return foo(a, local);
};
