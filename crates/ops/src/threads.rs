/// Starts the one pool of threads that all operations share; 0 is a thread for each core. To be
/// called once, first thing in a program.
pub fn start_threads(count: usize) -> Result<(), rayon::ThreadPoolBuildError> {
    // Candle's own element-wise operations would start a second pool, whose threads spin while they
    // wait and take the cores from this one: a fifth of the CPU time of training the quickstart,
    // by profile. One thread means that candle makes no pool.
    //
    // SAFETY: `set_var` is unsound only while another thread reads the environment other than
    // through std. None of ours runs yet, and nothing that this crate links starts one by itself.
    #[allow(unsafe_code)]
    unsafe {
        std::env::set_var("CANDLE_NUM_THREADS", "1");
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(count)
        .stack_size(STACK)
        .build_global()
}

/// Candle walks the graph of a computation by recursion, on the thread that asks for gradients.
const STACK: usize = 64 << 20;

/// Runs work on a thread of the pool, which then shares in every operation of it, instead of handing
/// each over and sleeping until it is done.
pub fn on_pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::scope(|_| work())
}
