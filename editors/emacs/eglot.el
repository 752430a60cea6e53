;;; Suggestions in Emacs' completion menu with Eglot (part of Emacs 29 and newer).  For ~/.emacs.d/lsp-complete-eglot.el, loaded from init.el.
;;; Eglot runs one server per buffer: use this for languages that have no other, or use lsp-mode, which runs several.

(require 'eglot)

(add-to-list 'eglot-server-programs
             '((prog-mode :language-id "plaintext") . ("lsp-complete")) t)
(add-hook 'prog-mode-hook #'eglot-ensure)
