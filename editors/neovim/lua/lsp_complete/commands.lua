-- :LspComplete SUBCOMMAND

local client = require('lsp_complete.client')
local ghost = require('lsp_complete.ghost')
local status = require('lsp_complete.status')

local M = {}

local function say(lines)
  vim.api.nvim_echo(
    vim.tbl_map(function(line)
      return { line .. '\n' }
    end, lines),
    true,
    {}
  )
end

local function pause(paused)
  status.paused = paused
  if paused then
    ghost.dismiss()
  end
  client.execute(paused and 'lsp-complete.pause' or 'lsp-complete.resume')
  client.fire('Status')
end

--- Turn suggestions on or off for the current filetype, or for the one named.
local function language(name)
  local filetype = name or vim.bo.filetype
  local buffer = vim.api.nvim_get_current_buf()
  local on = not (client.options.filetypes[filetype] or (client.options.filetypes[filetype] == nil and client.options.filetypes['*'] ~= false))
  client.options.filetypes[filetype] = on
  ghost.left()
  client.attach_all()
  client.attach(buffer)
  say({ ('lsp-complete: %s for %s'):format(on and 'on' or 'off', filetype) })
end

local function scratch(name, lines)
  vim.cmd('botright new')
  vim.bo.buftype, vim.bo.bufhidden, vim.bo.swapfile = 'nofile', 'wipe', false
  pcall(vim.api.nvim_buf_set_name, 0, name)
  vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
  vim.bo.modifiable = false
end

local function flat(value, prefix, out)
  for key, item in vim.spairs(value) do
    local name = prefix .. tostring(key)
    if type(item) == 'table' and not vim.tbl_isempty(item) then
      flat(item, name .. '.', out)
    else
      table.insert(out, ('%-44s %s'):format(name, type(item) == 'table' and '{}' or tostring(item)))
    end
  end
  return out
end

M.subcommands = {
  status = function()
    say(status.report())
  end,
  pause = function()
    pause(true)
  end,
  resume = function()
    pause(false)
  end,
  toggle = function()
    pause(not status.paused)
  end,
  restart = function()
    ghost.left()
    status.paused = false
    client.stop(true)
  end,
  engine = function()
    client.execute('lsp-complete.restartEngine')
  end,
  language = language,
  stats = function()
    client.execute('lsp-complete.stats', {}, function(err, result)
      scratch('lsp-complete://stats', err and { err.message } or flat(result or {}, '', {}))
    end)
  end,
  log = function()
    vim.cmd.tabnew(vim.lsp.log and vim.lsp.log.get_filename() or vim.lsp.get_log_path())
  end,
  models = function()
    scratch('lsp-complete://models', vim.fn.systemlist({ client.options.cmd[1], 'models', 'list' }))
  end,
}

function M.create()
  vim.api.nvim_create_user_command('LspComplete', function(call)
    local name = call.fargs[1] or 'status'
    local run = M.subcommands[name]
    if not run then
      return vim.notify(('LspComplete: there is no %s'):format(name), vim.log.levels.ERROR)
    end
    run(call.fargs[2])
  end, {
    nargs = '*',
    desc = 'lsp-complete: status, pause, restart and more',
    complete = function(lead, line)
      if #vim.split(vim.trim(line), '%s+') > 2 then
        return {}
      end
      return vim.tbl_filter(function(name)
        return vim.startswith(name, lead)
      end, vim.fn.sort(vim.tbl_keys(M.subcommands)))
    end,
  })
end

return M
