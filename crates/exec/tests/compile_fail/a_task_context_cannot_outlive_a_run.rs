//! Neither a context nor a value from it can be kept from one run of a task to the next.

use hairspring_exec::{Buffer, Limit, Pool, Reserved, ResourceId, Services, TaskCtx};

fn keep_the_context(kept: &mut Option<&'static TaskCtx<'static>>, ctx: &TaskCtx<'_>) {
    *kept = Some(ctx);
}

fn keep_the_guard(kept: &mut Option<Reserved<'static, 'static>>, ctx: &TaskCtx<'_>, resource: ResourceId) {
    *kept = ctx.reserve(resource, Limit::Forever).ok();
}

fn keep_the_buffer(kept: &mut Option<Buffer<'static, u32>>, ctx: &TaskCtx<'_>, pool: &Pool<u32>) {
    *kept = ctx.buffer(pool).ok();
}

fn main() {}
