-- For ~/.config/nvim/plugin/lsp-complete.lua (or init.lua), with the module itself on the runtime path.
-- All options with their defaults: lua/lsp_complete/config.lua
require("lsp_complete").setup {
  cmd = { "lsp-complete" },
}
