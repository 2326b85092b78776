/** A line: first come, first served, in constant time however long it is. */

const COMPACT_AT = 256;

/** Those who wait, in the order they came. */
export class WaitingLine<T> {
  #items: T[] = [];
  /** Who is before this index has gone. */
  #head: number = 0;

  /** How many wait. */
  get length(): number {
    return this.#items.length - this.#head;
  }

  /** Who waits longest; `undefined` when nobody does. */
  get first(): T | undefined {
    return this.#items[this.#head];
  }

  /** Who is behind so many others; `undefined` when nobody is. */
  at(place: number): T | undefined {
    return this.#items[this.#head + place];
  }

  /** Joins at the end. */
  push(item: T): void {
    this.#items.push(item);
  }

  /** The first one leaves. */
  shift(): T | undefined {
    const items = this.#items;
    if (this.#head === items.length) return undefined;
    const item = items[this.#head]!;
    items[this.#head++] = undefined as T;
    if (this.#head === items.length) items.length = this.#head = 0;
    else if (this.#head >= COMPACT_AT && this.#head * 2 >= items.length) {
      items.splice(0, this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Leaves from anywhere; false when they do not wait. */
  remove(item: T): boolean {
    const index = this.#items.indexOf(item, this.#head);
    if (index < 0) return false;
    if (index === this.#head) this.shift();
    else this.#items.splice(index, 1);
    return true;
  }

  /** Everybody, in order; the line is empty then. */
  clear(): T[] {
    const rest = this.#items.slice(this.#head);
    this.#items.length = this.#head = 0;
    return rest;
  }
}
