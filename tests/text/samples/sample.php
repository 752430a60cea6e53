<?php
declare(strict_types=1);

namespace App\Http;

use InvalidArgumentException;

final class Route
{
    private array $handlers = [];

    public function __construct(private readonly string $prefix = '/') {}

    public function get(string $path, callable $handler): static
    {
        $this->handlers['GET'][$this->prefix . ltrim($path, '/')] = $handler;
        return $this;
    }

    // it's the longest match that wins
    public function match(string $method, string $uri): mixed
    {
        foreach ($this->handlers[$method] ?? [] as $path => $handler) {
            if (preg_match('#^' . preg_replace('/\{(\w+)\}/', '(?<$1>[^/]+)', $path) . '$#u', $uri, $m)) {
                return $handler(...array_filter($m, 'is_string', ARRAY_FILTER_USE_KEY));
            }
        }
        throw new InvalidArgumentException("no route for {$method} {$uri}");
    }
}
?>
<h1><?= htmlspecialchars("日本語のページ") ?></h1>

<p>   trailing text  </p>
