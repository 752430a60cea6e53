-- What the server cannot see by itself: which buffer is looked at, and where the cursor was put.
--
-- Rules: one notification per rest of the cursor, not one per move; none while typing, since requests tell the place.

local client = require('lsp_complete.client')
local position = require('lsp_complete.position')

local M = {}

local REST_MS = 120
local timer = nil

local function place(buffer)
  local active = client.get()
  if not active or not active.initialized or not vim.lsp.buf_is_attached(buffer, active.id) then
    return nil
  end
  local row, col = position.cursor()
  return {
    textDocument = { uri = vim.uri_from_bufnr(buffer) },
    position = position.to_lsp(buffer, row, col, active.offset_encoding),
  }
end

--- The user looks at this buffer now.
function M.focus()
  local params = place(vim.api.nvim_get_current_buf())
  if params then
    client.notify('textDocument/didFocus', params)
  end
end

--- The cursor moved outside insert mode.
function M.moved()
  if not client.get() then
    return
  end
  timer = timer or vim.uv.new_timer()
  timer:start(REST_MS, 0, vim.schedule_wrap(function()
    local params = place(vim.api.nvim_get_current_buf())
    if params and vim.api.nvim_get_mode().mode:sub(1, 1) ~= 'i' then
      client.notify('lsp-complete/didMoveCursor', params)
    end
  end))
end

return M
