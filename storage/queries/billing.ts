/** The wallet as the API shows it; what moves money is in `ledger.ts`. */
export { type Wallet, walletOf } from '../ledger.ts';
