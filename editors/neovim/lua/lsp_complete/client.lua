-- The language client: one server for all buffers of this editor, restarted a few times if it dies.
--
-- Rules: a buffer is attached if it is a file with a name and its filetype is wanted. Nothing is shown twice.

local config = require('lsp_complete.config')

local M = { id = nil, options = config.defaults, status = { kind = 'Inactive', message = 'not started', busy = false } }

M.name = 'lsp_complete'
local MOST_RESTARTS = 3

local restarts, told, roots = 0, {}, {}
local colon = vim.fn.has('nvim-0.11') == 1 -- the client's functions are methods

function M.tell(message, level)
  if not told[message] then
    told[message] = true
    vim.schedule(function()
      vim.notify(message, level or vim.log.levels.WARN)
    end)
  end
end

--- `User LspComplete<name>` for statuslines and other plugins.
function M.fire(name)
  vim.api.nvim_exec_autocmds('User', { pattern = 'LspComplete' .. name, modeline = false })
end

local function set_status(kind, message, busy)
  M.status = { kind = kind, message = message or '', busy = busy or false }
  M.fire('Status')
  vim.cmd.redrawstatus()
end

--- The running client, or nil.
function M.get()
  local client = M.id and vim.lsp.get_client_by_id(M.id) or nil
  return client and not M.stopped(client) and client or nil
end

function M.stopped(client)
  return colon and client:is_stopped() or (not colon and client.is_stopped())
end

--- Send a request. Gives its id, or nil. handler(error, result).
function M.request(method, params, handler, buffer)
  local client = M.get()
  if not client then
    return nil
  end
  local done, id
  local function on_answer(err, result)
    handler(err, result)
  end
  if colon then
    done, id = client:request(method, params, on_answer, buffer)
  else
    done, id = client.request(method, params, on_answer, buffer)
  end
  return done and id or nil
end

function M.cancel(id)
  local client = M.get()
  if not client then
    return
  end
  if colon then
    client:cancel_request(id)
  else
    client.cancel_request(id)
  end
end

function M.notify(method, params)
  local client = M.get()
  if not client then
    return
  end
  if colon then
    client:notify(method, params)
  else
    client.notify(method, params)
  end
end

--- Run one of the server's commands. handler(error, result) is optional.
function M.execute(command, arguments, handler)
  return M.request(
    'workspace/executeCommand',
    { command = command, arguments = arguments or {} },
    handler or function() end,
    vim.api.nvim_get_current_buf()
  )
end

function M.wanted(buffer)
  if not vim.api.nvim_buf_is_loaded(buffer) or vim.bo[buffer].buftype ~= '' or vim.api.nvim_buf_get_name(buffer) == '' then
    return false
  end
  local filetypes = M.options.filetypes
  local own = filetypes[vim.bo[buffer].filetype]
  return own == nil and filetypes['*'] ~= false or own == true
end

local function root_of(buffer)
  return vim.fs.root(buffer, M.options.root_markers) or vim.fs.dirname(vim.api.nvim_buf_get_name(buffer))
end

local function capabilities()
  local made = vim.lsp.protocol.make_client_capabilities()
  made.textDocument.inlineCompletion = { dynamicRegistration = false }
  return made
end

local function initialization_options()
  local settings = vim.deepcopy(M.options.settings)
  settings.suggest = settings.suggest or {}
  if settings.suggest.surface == nil then
    local ghost = M.options.ghost ~= 'off'
    settings.suggest.surface = M.options.menu and (ghost and 'both' or 'menu') or 'ghost'
  end
  return { statusNotifications = true, settings = settings }
end

local function on_exit(code, signal)
  M.id, roots = nil, {}
  vim.schedule(function()
    if (code == 0 and signal == 0) or vim.v.exiting ~= vim.NIL then
      return set_status('Inactive', 'stopped')
    end
    restarts = restarts + 1
    set_status('Error', ('the server ended with status %d'):format(code))
    if restarts <= MOST_RESTARTS then
      return M.attach_all()
    end
    M.tell(('lsp-complete: the server ended %d times; see :LspComplete log, then :LspComplete restart'):format(restarts))
  end)
end

local function configuration(buffer)
  return {
    name = M.name,
    cmd = M.options.cmd,
    root_dir = root_of(buffer),
    capabilities = capabilities(),
    init_options = initialization_options(),
    exit_timeout = 2000,
    on_init = function()
      if require('lsp_complete.status').paused then
        M.execute('lsp-complete.pause') -- a server that was started again knows nothing of it
      end
    end,
    on_exit = on_exit,
    handlers = {
      ['didChangeStatus'] = function(_, result)
        set_status(result.kind, result.message, result.busy)
      end,
    },
  }
end

local function executable()
  local program = M.options.cmd[1]
  if vim.fn.executable(program) == 1 then
    return true
  end
  set_status('Error', 'no server')
  M.tell(
    ('lsp-complete: the command %s is not there; install the server (in a clone of lsp-complete: `pipx install .`), or set `cmd` in setup{}'):format(program)
  )
  return false
end

--- Tell the server of a workspace folder that it does not know yet.
local function add_root(client, buffer)
  local root = root_of(buffer)
  if not root or roots[root] or root == client.config.root_dir then
    return
  end
  roots[root] = true
  local folder = { uri = vim.uri_from_fname(root), name = vim.fs.basename(root) }
  M.notify('workspace/didChangeWorkspaceFolders', { event = { added = { folder }, removed = {} } })
end

--- Attach a buffer, starting the server if need be. Does nothing where suggestions are not wanted.
function M.attach(buffer)
  if not M.wanted(buffer) then
    return M.detach(buffer)
  end
  if vim.lsp.buf_is_attached(buffer, M.id or -1) then
    return
  end
  if not M.get() and not executable() then
    return
  end
  M.id = vim.lsp.start(configuration(buffer), {
    bufnr = buffer,
    reuse_client = function(client, wanted)
      return client.name == wanted.name and not M.stopped(client)
    end,
  })
  local client = M.get()
  if client then
    add_root(client, buffer)
    if M.options.on_attach then
      M.options.on_attach(client, buffer)
    end
  end
end

function M.detach(buffer)
  if M.id and vim.lsp.buf_is_attached(buffer, M.id) then
    vim.lsp.buf_detach_client(buffer, M.id)
  end
end

function M.attach_all()
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    M.attach(buffer)
  end
end

--- Stop the server; with `again`, start a new one at once.
function M.stop(again)
  restarts, told = 0, {}
  local client = M.get()
  M.id, roots = nil, {}
  if client then
    if colon then
      client:stop()
    else
      client.stop()
    end
  end
  if again then
    M.attach_all()
  end
end

--- A buffer's language changed: open it anew under the new one.
function M.reopen(buffer)
  M.detach(buffer)
  M.attach(buffer)
end

return M
