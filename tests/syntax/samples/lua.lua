local a = require("x.y")
local K = 1
-- Doc of f.
function M.f(x, b)
  return g(x) + a.h(1)
end
local function l(x)
  if x then
    return "s"
  end
end
M.q = function(z)
  return z
end
return M
