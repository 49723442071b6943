/** The wallet as the API shows it; what moves money is in `ledger.ts`. */
export { walletOf } from '../ledger.ts';
