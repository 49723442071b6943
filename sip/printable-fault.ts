/**
 * Converts an unexpected error for the log. Messages of SIP libraries and Node may quote a whole SIP message, with the
 * numbers of both parties. Removes digits that could be a number; code and stack stay.
 */
export function printableFault(error: unknown): Error {
  const fault = new Error(withoutNumbers(error instanceof Error ? error.message : String(error)));
  if (!(error instanceof Error)) return fault;
  fault.name = error.name;
  // The stack starts with the message, of any length.
  const frames = error.stack?.slice(error.stack.indexOf('\n    at ')) ?? '';
  fault.stack = `${error.name}: ${fault.message}${error.stack?.includes('\n    at ') ? frames : ''}`;
  return 'code' in error ? Object.assign(fault, { code: error.code }) : fault;
}

function withoutNumbers(text: string): string {
  return text.slice(0, MAX_MESSAGE_CHARS).replace(/\+?\d(?:[\s().-]?\d){5,}/g, '(number)');
}

const MAX_MESSAGE_CHARS = 300;
