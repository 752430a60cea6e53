-- Between byte columns, which the editor counts, and LSP's units. Pure but for reading lines of a buffer.

local M = {}

local new = vim.fn.has('nvim-0.11') == 1

--- Units of `encoding` in the first `byte` bytes of `line`.
function M.units(line, byte, encoding)
  byte = math.min(byte, #line)
  if encoding == 'utf-8' then
    return byte
  end
  if new then
    return vim.str_utfindex(line, encoding, byte, false)
  end
  local utf32, utf16 = vim.str_utfindex(line, byte)
  return encoding == 'utf-32' and utf32 or utf16
end

--- Bytes in the first `units` units of `line`.
function M.bytes(line, units, encoding)
  if encoding == 'utf-8' then
    return math.min(units, #line)
  end
  if new then
    return vim.str_byteindex(line, encoding, units, false)
  end
  local utf32, utf16 = vim.str_utfindex(line)
  local most = encoding == 'utf-32' and utf32 or utf16
  return vim.str_byteindex(line, math.min(units, most), encoding ~= 'utf-32')
end

local function line_at(buffer, row)
  return vim.api.nvim_buf_get_lines(buffer, row, row + 1, false)[1] or ''
end

--- An LSP position of a row and a byte column, both from 0.
function M.to_lsp(buffer, row, col, encoding)
  return { line = row, character = M.units(line_at(buffer, row), col, encoding) }
end

--- Row and byte column, both from 0, of an LSP position.
function M.from_lsp(buffer, position, encoding)
  return position.line, M.bytes(line_at(buffer, position.line), position.character, encoding)
end

--- The cursor of the current window: row and byte column, both from 0.
function M.cursor()
  local at = vim.api.nvim_win_get_cursor(0)
  return at[1] - 1, at[2]
end

--- UTF-16 units of a text, as the protocol counts accepted parts.
function M.utf16(text)
  local total = 0
  for _, line in ipairs(vim.split(text, '\n', { plain = true })) do
    total = total + M.units(line, #line, 'utf-16') + 1
  end
  return total - 1
end

return M
