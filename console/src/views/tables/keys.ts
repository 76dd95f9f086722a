/** Values of keys, as people write them: texts as they are, bytes in hexadecimal digits. */
import type { Value as Stored } from '../../contract/souk/type/v1/type_pb';
import { KeyType } from '../../contract/souk/table/v1/table_pb';
import type { Value } from '../../queries';
import { bytesValue, textValue, wholeValue } from '../../queries';
import { text } from './words';

/** A value as it was typed for a column, or what is wrong with it. */
export const parsed = (type: KeyType, typed: string): Value | string => {
  if (type === KeyType.INTEGER) {
    const isWhole = /^-?\d{1,19}$/.test(typed) && BigInt.asIntN(64, BigInt(typed)) === BigInt(typed);
    return isWhole ? wholeValue(BigInt(typed)) : text('integerWanted');
  }
  if (type === KeyType.BINARY) {
    if (!/^([0-9a-f]{2})*$/i.test(typed)) return text('hexWanted');
    return bytesValue(Uint8Array.from(typed.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16)));
  }
  return textValue(typed);
};

/** A value as it would be typed. */
export const written = ({ kind }: Stored): string => {
  if (kind.case === 'bytesValue') return Array.from(kind.value, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return kind.case === 'timeValue' || kind.case === undefined ? '' : String(kind.value);
};
