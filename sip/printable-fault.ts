/**
 * An unexpected error, fit for a log: what SIP libraries and Node put into messages may be a whole SIP message, with
 * the numbers of both parties. Digits that could be one are taken out; code and stack stay.
 */
export function printableFault(error: unknown): Error {
  const fault = new Error(withoutNumbers(error instanceof Error ? error.message : String(error)));
  if (!(error instanceof Error)) return fault;
  fault.name = error.name;
  // The stack starts with the message, however long that is.
  const frames = error.stack?.slice(error.stack.indexOf('\n    at ')) ?? '';
  fault.stack = `${error.name}: ${fault.message}${error.stack?.includes('\n    at ') ? frames : ''}`;
  return 'code' in error ? Object.assign(fault, { code: error.code }) : fault;
}

function withoutNumbers(text: string): string {
  return text.slice(0, MAX_MESSAGE_CHARS).replace(/\+?\d(?:[\s().-]?\d){5,}/g, '(number)');
}

const MAX_MESSAGE_CHARS = 300;
