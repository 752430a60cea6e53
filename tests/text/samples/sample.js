// A tiny event emitter, with everything that makes tokenizers sweat.
'use strict'

const EVENTS = Symbol("events");

export class Emitter {
  constructor() { this[EVENTS] = new Map() }

  on(name, fn = () => {}) {
    const list = this[EVENTS].get(name) ?? [];
    list.push(fn);
    this[EVENTS].set(name, list);
    return () => this.off(name, fn);
  }

  off(name, fn) {
    this[EVENTS].set(name, (this[EVENTS].get(name) || []).filter(f => f !== fn));
  }

  emit(name, ...args) {
    for (const fn of this[EVENTS].get(name) ?? []) {
      try { fn(...args) } catch (e) { console.error(`✗ ${name}: ${e.message}`) }
    }
  }
}

/* a block
   comment // with a line one inside
*/
const re = /^\s*(?:\/\/|#)\s?(.*)$/gmu;
const table = { "a-b": [1, 2.5e-3, 0xff], 'c': `x${1 + 1}y
z`, };


export default new Emitter()
