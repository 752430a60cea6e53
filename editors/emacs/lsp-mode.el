;;; Ghost text in Emacs 30 with lsp-mode 10.  For ~/.emacs.d/lsp-complete-lsp-mode.el, loaded from init.el.
;;; Accept the whole suggestion with C-<return> (or Tab, below); C-n and C-p choose another; any other key takes it away.

(require 'lsp-mode)
(require 'lsp-inline-completion)

(lsp-register-client
 (make-lsp-client
  :new-connection (lsp-stdio-connection '("lsp-complete"))
  :activation-fn (lambda (&rest _) t)   ; in every language
  :add-on? t                            ; beside the language's own server
  :priority -10
  :initialization-options '(:suggest (:surface "ghost"))
  :server-id 'lsp-complete))

(setq lsp-inline-completion-idle-delay 0.05) ; the default waits 2 seconds
(add-hook 'lsp-after-open-hook #'lsp-inline-completion-mode)
(add-hook 'prog-mode-hook #'lsp-deferred)

(define-key lsp-inline-completion-active-map (kbd "TAB") #'lsp-inline-completion-accept)
(define-key lsp-inline-completion-active-map (kbd "<tab>") #'lsp-inline-completion-accept)
