type Key = `${string}:${number}`;

interface Cache<T extends object> {
  readonly size: number;
  get(key: Key): T | undefined;
  set(key: Key, value: T, ttl?: number): void;
}

export function memo<A extends unknown[], R>(fn: (...args: A) => R): (...args: A) => R {
  const seen = new Map<string, R>();
  return (...args) => {
    const key = JSON.stringify(args);
    if (!seen.has(key)) {
      seen.set(key, fn(...args));
    }
    return seen.get(key)!;
  };
}

//#region enums
enum Level { Low = 1, High = Low << 3 }
//#endregion

export abstract class Store implements Cache<{ id: number }> {
  #map = new Map<Key, { id: number }>();
  get size() { return this.#map.size; }
  get(key: Key) { return this.#map.get(key); }
  set(key: Key, value: { id: number }, ttl = 60_000) {
    this.#map.set(key, value); // don't expire yet
  }
  protected abstract evict(level: Level): Promise<void>;
}
