;;; lsp-complete-lsp-mode.el --- Ghost text in Emacs 30 with lsp-mode 10  -*- lexical-binding: t -*-

;;; Commentary:
;; For ~/.emacs.d/lsp-complete-lsp-mode.el, loaded from init.el.  TAB or C-<return> accepts; C-n and C-p choose another;
;; any other key takes the suggestion away, and it comes back where typing agrees with it.
;;
;; lsp-mode's own `lsp-inline-completion-mode' waits 2.5 seconds after a key; here the request goes out after 50 ms of rest.

;;; Code:

(require 'lsp-mode)
(unless (require 'lsp-inline-completion nil t)
  (user-error "The ghost text of lsp-complete needs lsp-mode 10 or newer, from MELPA"))

(lsp-register-client
 (make-lsp-client
  :new-connection (lsp-stdio-connection '("lsp-complete"))
  :activation-fn (lambda (&rest _) t)   ; in every language
  :add-on? t                            ; beside the language's own server
  :priority -10
  :initialization-options '(:suggest (:surface "ghost"))
  :server-id 'lsp-complete))

(setq lsp-inline-completion-enable nil) ; ours asks instead

(defvar lsp-complete-delay 0.05 "Seconds without a key before a suggestion is asked for.")
(defvar-local lsp-complete--timer nil)

(defun lsp-complete--ask (buffer tick)
  "Ask for a suggestion in BUFFER if its text is still that of TICK."
  (when (and (eq buffer (current-buffer))
             (= tick (buffer-chars-modified-tick))
             (lsp-feature? "textDocument/inlineCompletion"))
    (lsp-inline-completion-display 'implicit)))

(defvar-local lsp-complete--tick 0)

(defun lsp-complete--after-command ()
  "Where the last command changed the text, ask soon."
  (let ((tick (buffer-chars-modified-tick)))
    (unless (or (= tick lsp-complete--tick) (eq this-command 'undo))
      (when lsp-complete--timer (cancel-timer lsp-complete--timer))
      (setq lsp-complete--timer
            (run-with-idle-timer lsp-complete-delay nil #'lsp-complete--ask (current-buffer) tick)))
    (setq lsp-complete--tick tick)))

(define-minor-mode lsp-complete-mode
  "Ghost text from lsp-complete while typing."
  :lighter " lc"
  (if lsp-complete-mode
      (progn (setq lsp-complete--tick (buffer-chars-modified-tick))
             (add-hook 'post-command-hook #'lsp-complete--after-command nil t))
    (remove-hook 'post-command-hook #'lsp-complete--after-command t)))

(add-hook 'lsp-after-open-hook #'lsp-complete-mode)
(add-hook 'prog-mode-hook #'lsp-deferred)

(define-key lsp-inline-completion-active-map (kbd "TAB") #'lsp-inline-completion-accept)
(define-key lsp-inline-completion-active-map (kbd "<tab>") #'lsp-inline-completion-accept)

(provide 'lsp-complete-lsp-mode)
;;; lsp-complete-lsp-mode.el ends here
