-- The state in a word, for statuslines, and in full, for :LspComplete status.

local client = require('lsp_complete.client')

local M = { paused = false }

--- "off" | "ready" | "working" | "no model" | "restarting" | "error"
function M.word()
  if not client.get() or M.paused then
    return 'off'
  end
  local status = client.status
  if status.kind == 'Error' then
    return status.message:lower():find('model') and 'no model' or 'error'
  elseif status.kind == 'Warning' then
    return 'restarting'
  end
  return (status.busy or status.kind == 'Inactive') and 'working' or 'ready'
end

--- For a statusline: `%{v:lua.require'lsp_complete'.statusline()}`. Empty in buffers without suggestions.
function M.line()
  local active = client.get()
  if not active or not vim.lsp.buf_is_attached(vim.api.nvim_get_current_buf(), active.id) then
    return ''
  end
  return 'lsp-complete: ' .. M.word()
end

--- Sentences about the state.
function M.report()
  local active = client.get()
  if not active then
    return { 'lsp-complete: no server runs (' .. client.status.message .. ')' }
  end
  local version = active.server_info and active.server_info.version or '?'
  local lines = { ('lsp-complete %s: %s'):format(version, M.word()) }
  if client.status.message ~= '' then
    table.insert(lines, client.status.message)
  end
  table.insert(lines, 'log: ' .. (vim.lsp.log and vim.lsp.log.get_filename() or vim.lsp.get_log_path()))
  return lines
end

return M
