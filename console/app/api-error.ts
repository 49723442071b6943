/** An error response of the server, or no response (`status` 0, code `UNREACHABLE`). */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly code: string;
  readonly requestId: string | null;

  constructor({ status, code, message, requestId = null }: ApiErrorFields) {
    super(message);
    this.status = status;
    this.code = code;
    this.requestId = requestId;
  }
}

interface ApiErrorFields {
  status: number;
  code: string;
  message: string;
  requestId?: string | null;
}
