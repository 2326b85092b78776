/** The time, looked at once a turn: to ask the clock for every query of a burst costs more than to choose its connection. */

/** A clock that stands still until the turn is over. */
export class TurnClock {
  /** When this turn began; 0 where nobody has asked yet. */
  #turn: number = 0;

  /** Milliseconds, as `performance.now()` tells them. */
  now(): number {
    if (this.#turn === 0) {
      this.#turn = performance.now();
      queueMicrotask(this.#endTurn);
    }
    return this.#turn;
  }

  readonly #endTurn = (): void => {
    this.#turn = 0;
  };
}
