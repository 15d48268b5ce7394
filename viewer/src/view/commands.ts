// What the arrows, Enter and `n` act on: the icicle, the table or the list that is on the screen.

export type Direction = "left" | "right" | "up" | "down";

export interface Commands {
  move(direction: Direction): void;
  enter(): void;
  /** To the next match of the search, or with -1 to the one before. */
  next?(step: 1 | -1): void;
}

const stack: Commands[] = [];

/** Takes the keys until the returned function is called. */
export function setActive(commands: Commands): () => void {
  stack.push(commands);
  return () => {
    const at = stack.indexOf(commands);
    if (at >= 0) stack.splice(at, 1);
  };
}

export function active(): Commands | undefined {
  return stack.at(-1);
}
