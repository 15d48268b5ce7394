// Numbers that are the same in each run.

export class Dice {
  constructor(seed) {
    this.state = BigInt(seed) * 0x9e3779b97f4a7c15n;
  }

  below(limit) {
    const mask = (1n << 64n) - 1n;
    this.state = (this.state + 0x9e3779b97f4a7c15n) & mask;
    let mixed = ((this.state ^ (this.state >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    mixed = ((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn) & mask;
    return Number((mixed ^ (mixed >> 31n)) % BigInt(Math.max(1, Math.floor(limit))));
  }

  of(list) {
    return list[this.below(list.length)];
  }
}
