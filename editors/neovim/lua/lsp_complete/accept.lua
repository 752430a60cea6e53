-- Accepting all of a suggestion, a line or a word of it: exactly its text, in an undo step of its own.

local client = require('lsp_complete.client')
local ghost = require('lsp_complete.ghost')
local position = require('lsp_complete.position')
local text = require('lsp_complete.text')

local M = {}

--- End the running undo step, so that one undo takes back what was accepted and nothing else.
local function break_undo()
  vim.bo.undolevels = vim.bo.undolevels
end

--- Insert `piece` at the cursor, replacing `tail` behind it; the cursor goes to the end of the piece.
local function insert(buffer, piece, tail)
  local row, col = position.cursor()
  local lines = vim.split(piece, '\n', { plain = true })
  local line = vim.api.nvim_buf_get_lines(buffer, row, row + 1, false)[1]
  local right = line:sub(col + 1, col + #tail) == tail and #tail or 0
  break_undo()
  vim.api.nvim_buf_set_text(buffer, row, col, row, col + right, lines)
  local last = lines[#lines]
  vim.api.nvim_win_set_cursor(0, { row + #lines, #lines == 1 and col + #last or #last })
  break_undo()
end

local function take(piece_of)
  local left = ghost.rest()
  if not left then
    return false
  end
  local shown = ghost.shown
  local piece = piece_of(left)
  if piece == left then
    ghost.hide()
    insert(shown.buffer, piece, shown.tail)
    local command = shown.item.command
    if command and command ~= vim.NIL then
      client.execute(command.command, command.arguments)
    end
  else
    insert(shown.buffer, piece, '')
    local length = position.utf16(shown.text:sub(1, #shown.text - #left + #piece))
    client.notify('textDocument/didPartiallyAcceptCompletion', { item = shown.item, acceptedLength = length })
    ghost.redraw()
  end
  client.fire('Accepted')
  return true
end

--- Insert all. Each of these gives false, and does nothing, while nothing is shown.
function M.all()
  return take(function(left)
    return left
  end)
end

function M.word()
  return take(text.word)
end

function M.line()
  return take(text.line)
end

return M
