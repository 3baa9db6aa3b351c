//! PENDING: ops of other branches, composed. Remove before merge.
#![allow(missing_docs)]
use crate::{Result, Tensor};
pub(crate) trait Pending {
    fn linear(&self, w: &Tensor, b: Option<&Tensor>) -> Result<Tensor>;
    fn index_select(&self, dim: i64, index: &Tensor) -> Result<Tensor>;
    fn addcmul_(&self, a: &Tensor, b: &Tensor, value: f64) -> Result<Tensor>;
    fn addcdiv_(&self, a: &Tensor, b: &Tensor, value: f64) -> Result<Tensor>;
    fn clamp_max(&self, m: f64) -> Result<Tensor>;
    fn clamp_(&self, lo: f64, hi: f64) -> Result<Tensor>;
    fn log_softmax(&self, dim: i64) -> Result<Tensor>;
    fn softmax(&self, dim: i64) -> Result<Tensor>;
    fn sub(&self, o: &Tensor) -> Result<Tensor>;
    fn mean(&self) -> Result<Tensor>;
    fn layer_norm(&self, s: &[i64], w: Option<&Tensor>, b: Option<&Tensor>, eps: f64) -> Result<Tensor>;
    fn nll(&self, target: &Tensor) -> Result<Tensor>;
}
impl Pending for Tensor {
    fn linear(&self, w: &Tensor, b: Option<&Tensor>) -> Result<Tensor> {
        let y = self.mm(&w.t()?)?;
        match b { Some(b) => y.add(b), None => Ok(y) }
    }
    fn index_select(&self, _dim: i64, index: &Tensor) -> Result<Tensor> {
        let rows = index.to_vec::<i64>()?;
        let mut sizes = self.sizes().to_vec();
        let row: usize = sizes[1..].iter().product();
        sizes[0] = rows.len();
        if self.dtype() == crate::DType::I64 {
            let v = self.to_vec::<i64>()?;
            return Tensor::from_vec(rows.iter().flat_map(|&r| v[r as usize * row..(r as usize + 1) * row].to_vec()).collect(), &sizes);
        }
        let v = self.to_vec::<f32>()?;
        Tensor::from_vec(rows.iter().flat_map(|&r| v[r as usize * row..(r as usize + 1) * row].to_vec()).collect(), &sizes)
    }
    fn addcmul_(&self, a: &Tensor, b: &Tensor, value: f64) -> Result<Tensor> { self.add_scaled_(&a.mul(b)?, value) }
    fn addcdiv_(&self, a: &Tensor, b: &Tensor, value: f64) -> Result<Tensor> { self.add_scaled_(&a.mul(&b.reciprocal()?)?, value) }
    fn clamp_max(&self, m: f64) -> Result<Tensor> { self.mul(-1.0)?.add(m)?.relu()?.mul(-1.0)?.add(m) }
    fn clamp_(&self, lo: f64, hi: f64) -> Result<Tensor> {
        let c = self.clamp_max(hi)?.add(-lo)?.relu()?.add(lo)?;
        self.copy_(&c)
    }
    fn log_softmax(&self, dim: i64) -> Result<Tensor> { self.sub(&self.exp()?.sum_dims(&[dim], true)?.log()?) }
    fn softmax(&self, dim: i64) -> Result<Tensor> { self.log_softmax(dim)?.exp() }
    fn sub(&self, o: &Tensor) -> Result<Tensor> { self.add_scaled(o, -1.0) }
    fn mean(&self) -> Result<Tensor> { self.sum()?.mul(1.0 / self.numel() as f64) }
    fn layer_norm(&self, s: &[i64], w: Option<&Tensor>, b: Option<&Tensor>, eps: f64) -> Result<Tensor> {
        let dims: Vec<i64> = (1..=s.len() as i64).map(|d| -d).collect();
        let n = 1.0 / s.iter().product::<i64>() as f64;
        let c = self.sub(&self.sum_dims(&dims, true)?.mul(n)?)?;
        let v = c.mul(&c)?.sum_dims(&dims, true)?.mul(n)?.add(eps)?.rsqrt()?;
        let mut y = c.mul(&v)?;
        if let Some(w) = w { y = y.mul(w)?; }
        if let Some(b) = b { y = y.add(b)?; }
        Ok(y)
    }
    fn nll(&self, target: &Tensor) -> Result<Tensor> {
        let t = target.to_vec::<i64>()?;
        let c = self.sizes()[1];
        let mut h = vec![0f32; t.len() * c];
        t.iter().enumerate().for_each(|(i, &k)| h[i * c + k as usize] = -1.0);
        self.mul(&Tensor::from_vec(h, self.sizes())?)?.sum_dims(&[1], false)
    }
}
