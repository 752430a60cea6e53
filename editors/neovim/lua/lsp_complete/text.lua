-- What is left of a suggestion, and its pieces. Pure: strings with '\n' between lines.

local M = {}

--- `text` without `typed` at its start; nil if it does not begin so.
function M.rest(text, typed)
  if text:sub(1, #typed) == typed then
    return text:sub(#typed + 1)
  end
end

--- The first word with the blanks before it: letters, digits and underscores (any bytes beyond ASCII count as letters), or a run of signs.
--- A line end goes with the indentation behind it.
function M.word(text)
  local blanks = text:match('^[%s]*')
  if blanks:find('\n', 1, true) and #blanks == #text then
    return text
  end
  local body = text:sub(#blanks + 1)
  local found = body:match('^[%w_\128-\255]+') or body:match('^[^%w_%s\128-\255]+') or ''
  return blanks .. found
end

--- The first line. Where the text begins with a line end, that and the line behind it.
function M.line(text)
  local lead = text:match('^\n*')
  local last = text:find('\n', #lead + 1, true)
  return last and text:sub(1, last - 1) or text
end

--- Blanks instead of tabs, from display column `column` on.
function M.expand(line, column, tabstop)
  local width = column
  return (line:gsub('[^\t]*\t?', function(piece)
    if piece:sub(-1) ~= '\t' then
      width = width + vim.fn.strdisplaywidth(piece, width)
      return piece
    end
    local before = piece:sub(1, -2)
    width = width + vim.fn.strdisplaywidth(before, width)
    local blanks = tabstop - width % tabstop
    width = width + blanks
    return before .. (' '):rep(blanks)
  end))
end

return M
