import type { FromChild } from './protocol.ts';

/** The model's process cannot answer. */
export class AnswerError extends Error {
  override readonly name = 'AnswerError';
  readonly code: Extract<FromChild, { type: 'failed' }>['code'];

  constructor(code: AnswerError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
