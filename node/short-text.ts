const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** How many characters `shortText` has to choose from, at each place. */
export const shortTextDigits = digits.length;

/**
 * A whole number from 0 on as letters of both cases and digits: the fewest characters that ids made of it can do with. Redis holds the
 * id of every session, and its memory comes in steps.
 * @param length the least; filled up with zeros
 */
export function shortText(value: number, length = 1): string {
  let text = '';
  for (let rest = value; rest > 0 || text.length < length; rest = Math.floor(rest / digits.length)) {
    text = digits[rest % digits.length]! + text;
  }
  return text;
}
