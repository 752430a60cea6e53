;;; lsp-complete-eglot.el --- Suggestions in the completion menu with Eglot  -*- lexical-binding: t -*-

;;; Commentary:
;; For ~/.emacs.d/lsp-complete-eglot.el, loaded from init.el.  C-M-i offers suggestions, as do corfu and company while typing.
;; Eglot runs one server per buffer, so in these modes lsp-complete takes the place of the language's own server: leave out
;; what should keep its own, or use lsp-mode, which runs several.

;;; Code:

(require 'eglot)

(defvar lsp-complete-eglot-modes '(prog-mode text-mode) "Modes (and those derived from them) that get suggestions.")

(add-to-list 'eglot-server-programs (cons lsp-complete-eglot-modes '("lsp-complete")))
(add-hook 'prog-mode-hook #'eglot-ensure)

(provide 'lsp-complete-eglot)
;;; lsp-complete-eglot.el ends here
