#pragma once

#include "esphome/components/button/button.h"
#include "esphome/components/twinedge/twinedge.h"

namespace esphome::twinedge {

/// Takes back the last true value, or all.
class ForgetButton : public button::Button, public Parented<TwinModel> {
  public:
    void set_all(bool all) {
        this->all_ = all;
    }

  protected:
    void press_action() override {
        this->parent_->forget(this->all_);
    }

    bool all_{false};
};

} // namespace esphome::twinedge
