require 'json'
module M
  # Doc of C.
  class C < B
    K = 1
    def initialize(a, b = 1)
      @a = a
      foo(a)
    end

    def self.m; end

    def short
      1
    end
  end
end
