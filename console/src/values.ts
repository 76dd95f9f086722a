/** Values of the contract as people read them. */
import type { Timestamp } from '@bufbuild/protobuf/wkt';

import type { Value } from './contract/souk/type/v1/type_pb';
import { bytes, count, number, time } from './format';

/** A value in the page's language; empty without one. */
export const shown = (value: Value | undefined): string => {
  const kind = value?.kind;
  switch (kind?.case) {
    case 'stringValue':
      return kind.value;
    case 'intValue':
      return count(kind.value);
    case 'doubleValue':
      return number(kind.value, 6);
    case 'boolValue':
      return String(kind.value);
    case 'bytesValue':
      return bytes(kind.value.length);
    case 'timeValue':
      return time(kind.value satisfies Timestamp);
    default:
      return '';
  }
};
