-- Ghost text: when to ask, what is shown, and drawing it.
--
-- Strategy: one suggestion at a time, of the current buffer in insert mode. While typing agrees with it, what is left
-- is drawn again at once, before the server has answered; each text change asks anew and an answer for an
-- older text is dropped.
--
-- Rules: the suggestion is kept as text from its own start, so that typed, deleted and accepted parts need no bookkeeping. What
-- is drawn never changes the buffer.

local client = require('lsp_complete.client')
local position = require('lsp_complete.position')
local text = require('lsp_complete.text')

local M = { shown = nil, dismissed = nil }

local space = vim.api.nvim_create_namespace('lsp_complete')
local waiting = nil -- { id, buffer, tick }
local asked_tick = {} -- buffer → changedtick at the last request

--- Whether suggestions are drawn in this mode.
local function inserting()
  return vim.api.nvim_get_mode().mode:sub(1, 1) == 'i'
end

local function cancel()
  if waiting then
    client.cancel(waiting.id)
    waiting = nil
  end
end

local function erase(buffer)
  if vim.api.nvim_buf_is_valid(buffer) then
    vim.api.nvim_buf_clear_namespace(buffer, space, 0, -1)
  end
end

--- Take the suggestion away.
function M.hide()
  local shown = M.shown
  M.shown = nil
  if shown then
    erase(shown.buffer)
    client.fire('Hidden')
  end
end

--- What is left to insert at the cursor, or nil: nothing is shown, or the text before the cursor disagrees.
function M.rest()
  local shown = M.shown
  if not shown or shown.buffer ~= vim.api.nvim_get_current_buf() then
    return nil
  end
  local row, col = position.cursor()
  if row < shown.row or (row == shown.row and col < shown.col) then
    return nil
  end
  if shown.row >= vim.api.nvim_buf_line_count(shown.buffer) then
    return nil
  end
  local ok, typed = pcall(vim.api.nvim_buf_get_text, shown.buffer, shown.row, shown.col, row, col, {})
  local left = ok and text.rest(shown.text, table.concat(typed, '\n')) or nil
  if not left or left == '' then
    return nil
  end
  return left
end

local function draw(left)
  local shown = M.shown
  local row, col = position.cursor()
  local lines = vim.split(left, '\n', { plain = true })
  local tabstop = vim.bo[shown.buffer].tabstop
  local first = text.expand(lines[1], vim.fn.virtcol('.') - 1, tabstop)
  local below = {}
  for n = 2, #lines do
    below[n - 1] = { { text.expand(lines[n], 0, tabstop), 'LspCompleteGhost' } }
  end
  erase(shown.buffer)
  vim.api.nvim_buf_set_extmark(shown.buffer, space, row, col, {
    virt_text = first ~= '' and { { first, 'LspCompleteGhost' } } or nil,
    virt_text_pos = 'inline',
    virt_lines = #below > 0 and below or nil,
    hl_mode = 'combine',
    strict = false,
  })
end

--- Draw what is left of the suggestion, or take it away. Gives whether something is shown.
function M.redraw()
  if not M.shown then
    return false
  end
  local left = inserting() and M.rest() or nil
  if not left then
    M.hide()
    return false
  end
  draw(left)
  return true
end

--- Our own values of an item: its text with plain line ends, where it begins, and how much right of the cursor it replaces.
local function prepared(item, buffer, encoding)
  local insert = item.insertText
  if type(insert) == 'table' then
    insert = insert.value
  end
  local row, col = position.cursor()
  local made = { buffer = buffer, item = item, row = row, col = col, tail = '' }
  made.text = insert:gsub('\r\n?', '\n')
  if item.range then
    made.row, made.col = position.from_lsp(buffer, item.range.start, encoding)
    local end_row, end_col = position.from_lsp(buffer, item.range['end'], encoding)
    if end_row > row or (end_row == row and end_col > col) then
      made.tail = table.concat(vim.api.nvim_buf_get_text(buffer, row, col, end_row, end_col, {}), '\n')
    end
  end
  return made
end

--- Show the item of this number.
local function show(items, index, buffer, encoding)
  local before = M.shown and M.rest() or nil
  M.shown = prepared(items[index], buffer, encoding)
  M.shown.items, M.shown.index, M.shown.encoding = items, index, encoding
  if M.redraw() then
    if M.rest() ~= before then
      client.notify('textDocument/didShowCompletion', { item = items[index] })
    end
    client.fire('Shown')
  end
end

local function on_answer(request, result)
  if waiting ~= request then
    return
  end
  waiting = nil
  local here = vim.api.nvim_get_current_buf() == request.buffer and inserting()
  if not here or vim.api.nvim_buf_get_changedtick(request.buffer) ~= request.tick then
    return
  end
  local row, col = position.cursor()
  if row ~= request.row or col ~= request.col then
    return
  end
  local items = result and (result.items or result) or {}
  local active = client.get()
  if #items == 0 or not active then
    M.hide()
    client.fire('Answered')
    return
  end
  show(items, 1, request.buffer, active.offset_encoding)
  client.fire('Answered')
end

--- Ask for suggestions at the cursor. explicit: the user pressed the key.
function M.ask(explicit)
  local buffer = vim.api.nvim_get_current_buf()
  local tick = vim.api.nvim_buf_get_changedtick(buffer)
  asked_tick[buffer] = tick -- also where no server is ready: `ready` asks then
  local active = client.get()
  if not active or not inserting() or not active.initialized or not vim.lsp.buf_is_attached(buffer, active.id) then
    return
  end
  cancel()
  local row, col = position.cursor()
  local request = { buffer = buffer, tick = tick, row = row, col = col }
  waiting = request
  request.id = client.request('textDocument/inlineCompletion', {
    textDocument = { uri = vim.uri_from_bufnr(buffer) },
    position = position.to_lsp(buffer, row, col, active.offset_encoding),
    context = { triggerKind = explicit and 1 or 2 },
  }, function(err, result)
    on_answer(request, not err and result or nil)
  end, buffer)
  if not request.id then
    waiting = nil
  end
end

--- The text changed in insert mode.
function M.changed()
  M.dismissed = nil
  M.redraw()
  if client.options.auto then
    M.ask(false)
  end
end

--- The cursor moved in insert mode; where the text changed too, `changed` does the work.
function M.moved()
  local buffer = vim.api.nvim_get_current_buf()
  if asked_tick[buffer] ~= vim.api.nvim_buf_get_changedtick(buffer) then
    return
  end
  local row, col = position.cursor()
  if waiting and waiting.buffer == buffer and waiting.row == row and waiting.col == col then
    return
  end
  local at = M.shown and M.shown.buffer == buffer and M.redraw()
  if not at and not M.dismissed and client.options.auto then
    M.ask(false)
  end
end

--- The server has become ready: what was typed while it started gets its suggestion.
function M.ready()
  local status = client.status
  local idle = not M.shown and not waiting and not M.dismissed and client.options.auto
  if idle and status.kind == 'Normal' and not status.busy and asked_tick[vim.api.nvim_get_current_buf()] then
    M.ask(false)
  end
end

--- Insert mode was left, or the buffer.
function M.left()
  cancel()
  M.hide()
  M.dismissed = nil
end

--- Take the suggestion away until the text changes.
function M.dismiss()
  cancel()
  M.hide()
  M.dismissed = true
end

--- Show the next (1) or previous (-1) of several suggestions; with only one, ask for more.
function M.cycle(step)
  local shown = M.shown
  if not shown or not M.rest() then
    return false
  end
  if #shown.items < 2 then
    M.ask(true)
    return true
  end
  local index = (shown.index - 1 + step) % #shown.items + 1
  local origin = shown.items[shown.index]
  show(shown.items, index, shown.buffer, shown.encoding)
  if not M.shown then -- the other one disagrees with what was typed since
    show({ origin }, 1, shown.buffer, shown.encoding)
  end
  return true
end

return M
