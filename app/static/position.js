// The coming position of rows in the hand: the rule of ordering/position.py (between_many) on exact decimals, as texts.

const COARSEST = 15n;
const ten = exponent => 10n ** exponent;

function ratio(text) { // [number, parts]: text = number / parts
  const [whole, parts = ''] = text.split('.');
  return [BigInt(whole + parts), ten(BigInt(parts.length))];
}

function scaled([number, parts], exponent) { // the value / 10 ** exponent, as a ratio
  return exponent > 0n ? [number, parts * ten(exponent)] : [number * ten(-exponent), parts];
}

const floor = (a, b) => (a < 0n && a % b !== 0n ? a / b - 1n : a / b);

function multiples(low, high, exponent) { // the first above low and the last below high
  const [a, b] = scaled(low, exponent);
  const [c, d] = scaled(high, exponent);
  return [floor(a, b) + 1n, -floor(-c, d) - 1n];
}

function written(number, exponent) {
  while (exponent < 0n && number % 10n === 0n) [number, exponent] = [number / 10n, exponent + 1n];
  if (exponent >= 0n) return String(number * ten(exponent));
  const digits = String(number < 0n ? -number : number).padStart(Number(-exponent) + 1, '0');
  const point = digits.length + Number(exponent);
  return `${number < 0n ? '-' : ''}${digits.slice(0, point)}.${digits.slice(point)}`;
}

function beside(low, high, n) { // whole numbers in a row at an open end
  let first = 1n;
  if (low !== null) [first] = multiples(ratio(low), ratio(low), 0n);
  else if (high !== null) first = multiples(ratio(high), ratio(high), 0n)[1] - BigInt(n) + 1n;
  return Array.from({ length: n }, (_, i) => String(first + BigInt(i)));
}

/** n positions strictly between two texts (null is an open end), with the fewest digits that keep them apart; [] where low is not below high. */
export function between(low, high, n) {
  if (low === null || high === null) return beside(low, high, n);
  const [a, b] = [ratio(low), ratio(high)];
  if (a[0] * b[1] >= b[0] * a[1]) return [];
  for (let exponent = COARSEST; ; exponent -= 1n) {
    const [first, last] = multiples(a, b, exponent);
    const steps = last - first + 2n;
    if (steps < BigInt(n + 1)) continue;
    return Array.from({ length: n }, (_, i) => written(first - 1n + floor(BigInt(i + 1) * steps, BigInt(n + 1)), exponent));
  }
}

export function compare(one, other) {
  const [a, b] = ratio(one);
  const [c, d] = ratio(other);
  return a * d < c * b ? -1 : a * d > c * b ? 1 : 0;
}
